"""What reads and joins a slice of files, wherever there is Python."""
