// Keys as words whose unsigned order is theirs. `kind` says what the bits are: 0 unsigned, 1 signed, 2 floating point;
// `flip` is 0, or all ones to turn the order round. Only integers are compared, so subnormals have their places too. -0 and +0 have one key;
// every NaN has the highest, whichever way is sorted.
const uint SIGN = 0x80000000u;
const uint TOP = 0xFFFFFFFFu;

// The word that the digit at `shift` lies in.
uint order_word(uint bits) {
    if (kind == 2u) {
        uint magnitude = bits & ~SIGN;
        if (magnitude > 0x7F800000u) {
            return TOP;
        }
        bits = magnitude == 0u ? SIGN : (bits & SIGN) != 0u ? ~bits : bits | SIGN;
    } else if (kind == 1u) {
        bits ^= SIGN;
    }
    return bits ^ flip;
}

uint order_word(uvec2 bits) {
    if (kind == 2u) {
        uint magnitude = bits.y & ~SIGN;
        if (magnitude > 0x7FF00000u || (magnitude == 0x7FF00000u && bits.x != 0u)) {
            return TOP;
        }
        bool negative = (bits.y & SIGN) != 0u;
        if ((magnitude | bits.x) == 0u) {
            bits.y = SIGN;
        } else {
            bits = negative ? ~bits : uvec2(bits.x, bits.y | SIGN);
        }
    } else if (kind == 1u) {
        bits.y ^= SIGN;
    }
    uint word = shift < 32u ? bits.x : bits.y;
    return word ^ flip;
}

uint digit_of(W key) {
    return bitfieldExtract(order_word(key), int(shift & 31u), 8);
}
