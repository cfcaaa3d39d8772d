"""Queues as exactly-once sources and sinks of Apache Spark, and the jobs that work on them (extra `inorder[spark]`)."""

from __future__ import annotations
