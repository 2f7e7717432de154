// Read by TypeScript and by AssemblyScript alike.

/** Numbers of the kernels in a program's instructions. */
export const END = 0;
export const EMBED = 1;
export const RMS_NORM = 2;
export const ROPE_STORE = 3;
export const ATTENTION = 4;
export const GATE = 5;
export const ADD = 6;
export const SOFTCAP = 7;
export const LINEAR_F32 = 8;
export const LINEAR_F16 = 9;
export const ROTATE = 10;
export const QUANTIZE = 11;
export const LINEAR_NIBBLE_INT8 = 12;
export const LINEAR_BYTE_INT8 = 13;
export const ADD_BIAS = 14;
export const LINEAR_FIELDS_FLOAT = 15;
export const READ_STREAM = 16;
export const LINEAR_TILES_FLOAT = 17;
export const LINEAR_FIELDS_INT8 = 18;
export const LINEAR_NIBBLE_DIRECT = 19;
export const LINEAR_FIELDS_DIRECT = 20;
export const LINEAR_PLANES = 21;
export const ADD_HALVES = 22;
export const GRAM_PACK = 40;
export const GRAM = 41;
export const SUPPRESS = 42;
export const SELECT_CHANNELS = 50;
export const FETCH_RESIDUAL = 51;
export const ADD_RESIDUAL = 52;
export const PLACE_ROWS = 53;

/** Set in an instruction's flags word when the next one may start before all threads are done with this. */
export const NO_BARRIER = 1;

/** Addresses of the control words, each on a cache line of its own. */
export const GENERATION = 64;
export const PROGRAM = 128;
export const THREADS = 192;
export const BARRIER_COUNT = 256;
export const BARRIER_PHASE = 320;
export const SLEEPERS = 384;
/** Whether thread 0 may sleep. */
export const MAY_WAIT = 448;
/** Why rows of slow memory could not be read, 0 while all could; see rowFetcher.ts. */
export const FETCH_PROBLEM = 512;
/** Last generation that each thread has seen, a word each. */
export const SEEN = 1024;
/** What the words from SEEN on have room for. */
export const MOST_THREADS = 256;
