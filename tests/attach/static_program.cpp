// A program that uses nothing.
int main() { return 0; }
