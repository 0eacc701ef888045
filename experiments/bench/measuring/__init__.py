"""What benchmarks share: the machine, processes of their own, and figures as files and as a picture."""
