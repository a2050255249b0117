"""Tries goals on the past: replays history through the planner, scores configurations, and searches for better ones."""
