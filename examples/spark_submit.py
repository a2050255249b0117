"""Main file for `spark-submit`, the command `trimtab` on a Spark cluster: see docs/calibration.md.

    spark-submit --py-files trimtab.zip examples/spark_submit.py calibrate --history s3a://… --out calibration.yaml
"""

from trimtab.__main__ import run

if __name__ == "__main__":
    run()
