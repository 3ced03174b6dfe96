// Which keys count for which query rows, and their scores.
// Of a row: its head among those that share keys, and its query.
uvec2 head_and_query(uint row) {
    uint r = min(row, rows - 1u);
    return uvec2(r / sq, r % sq);
}

// Positions beyond it are as it is, so that none wraps round.
const uint LAST_POSITION = 1u << 30;

// Where an invocation's rows and keys are, and which keys count for which rows.
struct Block {
    uint z;      // batch
    uint head;   // of keys
    uint row;    // the first of the block
    uint limit;  // keys
    uint begin, end;
    uint run;    // the only one, where each run is a block of its own
};

uint position_of(Block at, uint query) {
    return query + offset + (HAS_POSITIONS != 0u ? min(positions[at.z], LAST_POSITION) : 0u);
}

Block block_of(uint number) {
    Block at;
    bool split = (phase & SPLIT) != 0u;
    at.run = split ? number % (end_run - begin_run) : 0u;
    number = split ? number / (end_run - begin_run) : number;
    at.row = number % per_head * ROWS;
    at.head = number / per_head % heads;
    at.z = number / per_head / heads;
    at.limit = HAS_LENGTHS != 0u ? min(lengths[at.z], sk) : sk;
    uvec2 first = head_and_query(at.row);
    uvec2 beyond = head_and_query(at.row + ROWS - 1u);
    bool whole = first.x != beyond.x;
    uint lowest = position_of(at, whole ? 0u : first.y);
    uint highest = position_of(at, whole ? sq - 1u : beyond.y);
    uint used = causal != 0u ? min(at.limit, highest + 1u) : at.limit;
    uint behind = window != 0u && lowest + 1u > window ? (lowest + 1u - window) / RUN : 0u;
    at.begin = max(begin_run + at.run, behind);
    at.end = min(split ? at.run + 1u : end_run, (used + RUN - 1u) / RUN);
    return at;
}

bool counts(Block at, uvec2 place, uint key) {
    uint position = position_of(at, place.y);
    bool near = (causal == 0u || key <= position) && (window == 0u || key + window > position);
    bool there = key < at.limit && near;
    if (HAS_MASK != 0u) {
        uint head = at.head * shared_by + place.x;
        uint from = MASK_START + at.z * MASK_BATCH + head * MASK_HEAD + place.y * MASK_QUERY;
        there = there && canon(mask[from + min(key, sk - 1u) * MASK_KEY]) > T(0);
    }
    return there;
}

T score(Block at, uvec2 place, uint key, T dot) {
    T s = canon(mul(canon(scale), canon(dot)));
    if (HAS_BIAS != 0u) {
        uint head = at.head * shared_by + place.x;
        T more = bias[BIAS_START + at.z * BIAS_BATCH + head * BIAS_HEAD + place.y * BIAS_QUERY +
                      min(key, sk - 1u) * BIAS_KEY];
        s = canon(s + canon(more));
    }
    return counts(at, place, key) ? s : minus_infinity();
}
