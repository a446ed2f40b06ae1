"""The container engine: its client, its checks, its images, and owners of containers."""
