/*
 * How C libraries and kernels write their assembly: atomics, system calls, wide arithmetic, string operations, floating point.  All
 * of it keeps its promises; tests/integration/test_audit.py wants nothing found here.
 */
#include <stddef.h>
#include <stdint.h>
int a_cas(volatile int *p, int t, int s)
{
	__asm__ __volatile__("lock ; cmpxchg %3, %1" : "=a"(t), "=m"(*p) : "a"(t), "r"(s) : "memory");
	return t;
}
int a_swap(volatile int *p, int v)
{
	__asm__ __volatile__("xchg %0, %1" : "=r"(v), "=m"(*p) : "0"(v) : "memory");
	return v;
}
int a_fetch_add(volatile int *p, int v)
{
	__asm__ __volatile__("lock ; xadd %0, %1" : "=r"(v), "=m"(*p) : "0"(v) : "memory");
	return v;
}
void a_and(volatile int *p, int v)
{
	__asm__ __volatile__("lock ; and %1, %0" : "=m"(*p) : "r"(v) : "memory");
}
void a_store(volatile int *p, int x)
{
	__asm__ __volatile__("mov %1, %0 ; lock ; orl $0,(%%rsp)" : "=m"(*p) : "r"(x) : "memory");
}
void a_barrier(void)
{
	__asm__ __volatile__("" : : : "memory");
}
void a_spin(void)
{
	__asm__ __volatile__("pause" : : : "memory");
}
int a_ctz_64(uint64_t x)
{
	__asm__("bsf %1,%0" : "=r"(x) : "r"(x));
	return x;
}
int a_clz_64(uint64_t x)
{
	__asm__("bsr %1,%0 ; xor $63,%0" : "=r"(x) : "r"(x));
	return x;
}
long sys6(long n, long a1, long a2, long a3, long a4, long a5, long a6)
{
	unsigned long ret;
	register long r10 __asm__("r10") = a4;
	register long r8 __asm__("r8") = a5;
	register long r9 __asm__("r9") = a6;
	__asm__ __volatile__("syscall"
			     : "=a"(ret)
			     : "a"(n), "D"(a1), "S"(a2), "d"(a3), "r"(r10), "r"(r8), "r"(r9)
			     : "rcx", "r11", "memory");
	return ret;
}
uintptr_t tp(void)
{
	uintptr_t tp;
	__asm__("mov %%fs:0,%0" : "=r"(tp));
	return tp;
}
long double fmodl_(long double x, long double y)
{
	unsigned short fpsr;
	do
		__asm__("fprem; fnstsw %%ax" : "+t"(x), "=a"(fpsr) : "u"(y));
	while (fpsr & 0x400);
	return x;
}
long double fabsl_(long double x)
{
	__asm__("fabs" : "+t"(x));
	return x;
}
long long llrintl_(long double x)
{
	long long r;
	__asm__("fistpll %0" : "=m"(r) : "t"(x) : "st");
	return r;
}
long lrint_(double x)
{
	long r;
	__asm__("cvtsd2si %1, %0" : "=r"(r) : "x"(x));
	return r;
}
double sqrt_(double x)
{
	__asm__("sqrtsd %1, %0" : "=x"(x) : "x"(x));
	return x;
}
int fesetround_(int r)
{
	unsigned short cw;
	unsigned mx;
	__asm__ __volatile__("fnstcw %0" : "=m"(cw));
	__asm__ __volatile__("stmxcsr %0" : "=m"(mx));
	__asm__ __volatile__("fldcw %0" ::"m"(cw));
	__asm__ __volatile__("ldmxcsr %0" ::"m"(mx));
	return cw ^ mx;
}
#define sub_ddmmss(sh, sl, ah, al, bh, bl)                                                                                         \
	__asm__("subq %5,%q1\n\tsbbq %3,%q0"                                                                                       \
		: "=r"(sh), "=&r"(sl)                                                                                              \
		: "0"((uint64_t)(ah)), "rme"((uint64_t)(bh)), "1"((uint64_t)(al)), "rme"((uint64_t)(bl)))
#define umul_ppmm(w1, w0, u, v) __asm__("mulq %3" : "=a"(w0), "=d"(w1) : "%0"((uint64_t)(u)), "rm"((uint64_t)(v)))
uint64_t gmp(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t h, l, x, y;
	sub_ddmmss(h, l, a, b, c, d);
	umul_ppmm(x, y, a, b);
	uint64_t q, r;
	__asm__("divq %4" : "=a"(q), "=d"(r) : "0"(l), "1"(h), "rm"(d));
	return h ^ l ^ x ^ y ^ q ^ r;
}
static inline void *kmemcpy(void *to, const void *from, size_t n)
{
	unsigned long d0, d1, d2;
	__asm__ volatile("rep ; movsq\n\tmovq %4,%%rcx\n\trep ; movsb\n\t"
			 : "=&c"(d0), "=&D"(d1), "=&S"(d2)
			 : "0"(n >> 3), "g"(n & 7), "1"(to), "2"(from)
			 : "memory");
	return to;
}
void *kk(void *a, void *b, size_t n)
{
	return kmemcpy(a, b, n);
}
static inline int ktest(long nr, volatile unsigned long *addr)
{
	_Bool oldbit;
	__asm__ volatile("bt %2,%1" : "=@ccc"(oldbit) : "m"(*(unsigned long *)addr), "r"(nr) : "memory");
	return oldbit;
}
int kt(long n, volatile unsigned long *a)
{
	return ktest(n, a);
}
size_t kstrlen(const char *s)
{
	size_t n;
	const char *p = s;
	__asm__ volatile("repne scasb" : "=&c"(n), "+&D"(p) : "a"(0), "0"(-1L) : "memory", "cc");
	return ~n - 1;
}
void cs2(uint64_t k[2])
{
	uint64_t a = 0, d = 0;
	__asm__ volatile("lock cmpxchg16b %0" : "+m"(*(__int128 *)k), "+a"(a), "+d"(d) : "b"(1L), "c"(1L) : "cc");
}
unsigned crc(unsigned c, uint64_t x)
{
	uint64_t r = c;
	__asm__("crc32q %1,%0" : "+r"(r) : "rm"(x));
	return r;
}
uint32_t bswap(uint32_t x)
{
	__asm__("bswap %0" : "+r"(x));
	return x;
}
uint64_t rotl(uint64_t x, int n)
{
	__asm__("rolq %%cl,%0" : "+r"(x) : "c"(n));
	return x;
}
