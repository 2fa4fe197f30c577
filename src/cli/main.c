/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

int main(void)
{
	puts("firn " FIRN_VERSION);
	return 0;
}
