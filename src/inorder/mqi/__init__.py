"""Programs written for IBM MQ: the message queue interface (MQI) over a store.

Doors call `verbs`; a program in Python, Node or C reaches it through the library or the substitute modules.

Rules: *mqi* M-1 to M-16.
"""
