"""A simulated cluster in virtual time: brokers, logs, replication, a controller with Kafka's reassignment
calls, and faults."""
