"""From a propnet to a GameTree, its SequenceForm and its SamplingForm: exact, merged, as flat arrays."""
