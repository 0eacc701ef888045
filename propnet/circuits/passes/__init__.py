"""Simplification passes, one per file. Each maps a circuit or a propnet to an equivalent one.

Circuit passes (flatten, absorb, factor, pairs) preserve every output as a boolean function of the inputs. Propnet
passes (constants, equal_registers, invariants) preserve the outputs in every reachable state.
"""
