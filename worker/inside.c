#include "inside.h"

int inside_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 2;
}
