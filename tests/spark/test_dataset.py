"""A frame that is not what a step needs is refused at the door, with every column that is wrong."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cluster_model.errors import InputError
from spark.schemas import BrokerWindows


def test_wrong_and_missing_columns_are_told_at_once(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("c", "1", 2.0)], "cluster_id string, broker string, mean double")
    with pytest.raises(InputError) as error:
        BrokerWindows(frame)
    told = str(error.value)
    assert "column broker: expected int, found string" in told
    assert "column resource: expected string, found no such column" in told


def test_columns_beyond_the_schema_are_dropped_and_the_order_is_the_schemas(spark: SparkSession) -> None:
    row = "bigint(1) samples, 2.0D max, 1.0D mean, timestamp'2026-01-01' start, 'cpu' resource, 1 broker, 'c' cluster_id, 7 more"
    frame = spark.sql(f"select {row}")
    assert BrokerWindows(frame).frame.columns == BrokerWindows.SCHEMA.names
