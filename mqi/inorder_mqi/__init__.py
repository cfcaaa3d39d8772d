"""The compiled library of inorder for programs written for IBM MQ; `inorder.mqi.building` finds it here."""
