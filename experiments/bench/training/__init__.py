"""The parts of the benchmark `train`, one for each way of training networks."""
