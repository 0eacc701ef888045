"""Simplifications, one per file. Each maps a circuit or a network to one that means the same.

Circuit passes (flatten, absorb, factor, pairs) keep every output as a boolean function of the inputs. Network passes
(constants, equal_registers) keep what can be seen of every state that play can reach.
"""
