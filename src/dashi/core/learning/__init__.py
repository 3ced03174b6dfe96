"""What is learned on the device: ridge fits, the band model, and whether rules can be found again."""
