"""Queues in Spark SQL: the statements that work, and those that are refused with one that does."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import inorder


def test_a_view_is_read_and_written_and_what_cannot_work_is_refused(queues: SparkSession, url: str) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("R")
    sql = queues.sql
    sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING inorder OPTIONS (url '{url}', queue 'Q')")
    sql("INSERT INTO orders (body, priority) VALUES (X'31', 3), (X'32', 5)")
    assert [row.priority for row in sql("SELECT priority FROM orders WHERE body = X'32'").collect()] == [5]
    with pytest.raises(PySparkException, match="the sink appends"):
        sql("INSERT OVERWRITE orders (body) VALUES (X'34')")
    with pytest.raises(PySparkException, match="Use CREATE TEMPORARY VIEW"):
        sql(f"CREATE TABLE orders_table USING inorder OPTIONS (url '{url}', queue 'Q')")
    sql("CREATE TABLE orders_table (body STRING, queue STRING) USING inorder")  # Spark asks nobody
    try:
        with pytest.raises(PySparkException, match="Use CREATE TEMPORARY VIEW"):
            sql("SELECT * FROM orders_table").collect()
        place = f"url = '{url}', queue = 'Q'"
        read = sql(f"SELECT body FROM orders_table WITH ({place}, body = 'string') ORDER BY body")
        assert read.collect() == [("1",), ("2",)]
        sql(f"INSERT INTO orders_table WITH ({place}, queueColumn = 'queue') VALUES ('3', 'R')")
    finally:
        sql("DROP TABLE orders_table")
    with inorder.connect(url) as qm:
        assert [message.body for message in qm.browse("R")] == [b"3"]
        assert qm.depth("Q") == 2
