"""Reports: gathers and groups runs, and renders curves, facts of games and policies as an HTML page."""
