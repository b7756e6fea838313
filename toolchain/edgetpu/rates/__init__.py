"""Plans for models with rates of requests and deadlines: queues at each device, least latency."""
