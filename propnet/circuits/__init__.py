"""Ground rules -> a propnet: an and-inverter graph with registers and named outputs, and its simplification."""
