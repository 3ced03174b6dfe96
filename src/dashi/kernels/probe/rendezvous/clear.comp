void main() {
    come[gl_LocalInvocationIndex] = 0u;
}
