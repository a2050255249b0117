"""Reports of a calibration and of a backtest, each one HTML page. Called by the commands; pure functions."""
