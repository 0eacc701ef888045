"""The parts of the benchmark `train`, one for each way to train networks."""
