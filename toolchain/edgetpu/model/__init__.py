"""A model as the planner sees it: read, with the cost of its stages and the rules of the runner."""
