"""Follows the cluster's metadata: the KRaft log on disk, or an admin interface that is polled, into one image."""
