#if defined(__x86_64__)
#define LMEMO_CHECKSUM_KERNEL kAvx2Checksum
#include "codec/checksum_kernel.h"
#endif
