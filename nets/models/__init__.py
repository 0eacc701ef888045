"""Networks and what they are fed: encoders of games, flax modules, replay buffers, sharded batches."""
