"""The cluster as data: resources, the frozen `Snapshot`, snapshot files, the live model."""
