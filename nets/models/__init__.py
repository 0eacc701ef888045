"""Networks and their inputs: feature encoders, flax modules, replay buffers, sharded batches."""
