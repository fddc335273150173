/* The head of a snapshot's file, as nhm_snapshot.cc writes it and restore.c reads it: how a
 * process continues from this file. The file's other pages are the process's memory. */

#ifndef NHM_IMAGE_H
#define NHM_IMAGE_H

enum {
	NHM_IMAGE_MAGIC = 0x324d484e, /* "NHM2" */
	NHM_IMAGE_FILES = 64,
	NHM_IMAGE_MAPS = 8192
};

/* Where restore.c is: setup links it there. */
#define NHM_RESTORER 0x100000000000ul
#define NHM_RESTORER_END (NHM_RESTORER + (1ul << 24))

/* What a function keeps for its caller, and where it returns to. */
struct nhm_registers {
	unsigned long rbx, rbp, r12, r13, r14, r15, rsp, rip;
};

struct nhm_descriptor {
	int fd;
	int file; /* its place in NHM_STREAMS; -1: none of these, /dev/null will do */
};

struct nhm_mapping {
	unsigned long start, length;
	unsigned long protection; /* PROT_... */
	unsigned long offset;	  /* in the file; 0: of zeros */
};

struct nhm_image {
	unsigned long magic;
	struct nhm_registers registers;
	unsigned long fs;
	unsigned long nr_descriptors, nr_mappings;
	struct nhm_descriptor descriptors[NHM_IMAGE_FILES];
	struct nhm_mapping mappings[NHM_IMAGE_MAPS];
};

#endif
