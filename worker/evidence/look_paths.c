/* What happens in the program behind the accused blocks. */
#include "evidence/look_inside.h"

int look_at_paths(struct look *look, struct error *error)
{
	(void)error;
	json_object_set_new(look->answer, "paths", json_array());
	return 0;
}
