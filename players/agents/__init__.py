"""Agents that decide online, one file each; `entries` lists them, `agent_registry` finds one by its name."""
