"""What CUDA graph capture takes, tried on the GPU itself with a stand-in for the model."""
