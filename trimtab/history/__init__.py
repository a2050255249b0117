"""What happened, for people and for Spark: samples in Parquet, decisions and their outcomes in SQLite."""
