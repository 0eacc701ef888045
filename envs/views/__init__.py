"""What players know: information-set keys, action-observation histories, observation windows, public states."""
