"""What people and programs see: each view draws a diagnosis, none computes."""
