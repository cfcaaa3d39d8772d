/* What a process pays for the library: prints the milliseconds of the first MQCONN, the memory in MB after it, and the
 * microseconds of a call that does nothing. */
#include <cmqc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CALLS = 10000 };

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

int main(void) {
    MQHCONN hconn;
    MQLONG cc, rc;
    char line[100];
    long kilobytes = 0;
    double began = now();
    MQCONN("QM1", &hconn, &cc, &rc);
    printf("%f ", (now() - began) * 1e3);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmRSS: %ld", &kilobytes);
    began = now();
    for (int i = 0; i < CALLS; i++)
        MQBACK(hconn, &cc, &rc);
    printf("%f %f\n", kilobytes / 1024.0, (now() - began) * 1e6 / CALLS);
    return cc;
}
