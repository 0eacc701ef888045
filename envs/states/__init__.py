"""Games of states: where every player always knows the state, so that states are the information sets.

Then the histories that reach a state merge into one node, and the game is a graph of states instead of a tree.
"""
