"""A placement of replicas on brokers, its loads and scores, what an action changes in it, and whether an action is acceptable."""
