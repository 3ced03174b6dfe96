#include "tagged_words.glsl"
