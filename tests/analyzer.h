/*
 * What clang's analyzer cannot see, because it looks at one file at a time: included before everything else by
 * tests/lint, and by nothing else.
 */
#include "error.h"

#define error_set(...) ((void)error_set(__VA_ARGS__), -1)
#define error_set_errno(...) ((void)error_set_errno(__VA_ARGS__), -1)
#define error_wrap(...) ((void)error_wrap(__VA_ARGS__), -1)
