"""Files: which there are, results that appear whole or not at all, secrets that URIs hold."""
