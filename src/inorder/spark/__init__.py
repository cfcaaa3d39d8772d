"""Queues as exactly-once sources and sinks for Apache Spark, and jobs that use them (extra `inorder[spark]`).

import inorder.spark

inorder.spark.register(spark)
spark.read.format("inorder").option("queue", "ORDERS").load("orders.db")
spark.readStream.format("inorder").options(queue="ORDERS", mode="drain", application="archive").load("orders.db")
df.write.format("inorder").option("queue", "ORDERS").mode("append").save("orders.db")
"""

from __future__ import annotations

from .finishing import finish, release, transaction_time
from .listening import report_progress
from .registering import register
from .schema import arrow_schema, spark_schema

__all__ = ["arrow_schema", "finish", "register", "release", "report_progress", "spark_schema", "transaction_time"]
