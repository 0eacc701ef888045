"""Lower bounds on exploitability without a tree: approximate and local best responses, and their estimates."""
