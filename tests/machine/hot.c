/* A function that is too large to be inlined without a profile, called in a hot loop; and a small
 * one that is hardly ever called. */
unsigned table[256];

unsigned mix(unsigned x)
{
#define STEP(n) x ^= table[(x >> (n)) & 255]; x = x * 2654435761u + (n); if (x & 1u << (n)) x ^= x >> 7;
	STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8)
	STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15) STEP(16)
	return x;
}

unsigned rare(unsigned x)
{
	return x / 3 + table[x & 255];
}

int main(void)
{
	unsigned x = 1;

	for (unsigned i = 0; i < 200000; i++) {
		x = mix(x + i);
		if (x % 65536 == 7)
			x += rare(x);
	}
	return x == 12345;
}
