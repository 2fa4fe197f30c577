/* SPDX-License-Identifier: Apache-2.0 */
#include "store/memory/dictionary.h"

#include <stdlib.h>

enum status dictionary_new(size_t limit_bytes, struct dictionary **out)
{
	struct dictionary *d = calloc(1, sizeof(*d));
	enum status s = d ? strtab_init(&d->texts, limit_bytes) : E_NOMEM;
	if (s != OK) {
		free(d);
		return s;
	}
	atomic_init(&d->refs, 1);
	lock_init(&d->lock, LOCK_DICTIONARY);
	*out = d;
	return OK;
}

struct dictionary *dictionary_ref(struct dictionary *d)
{
	atomic_fetch_add(&d->refs, 1);
	return d;
}

void dictionary_unref(struct dictionary *d)
{
	if (!d || atomic_fetch_sub(&d->refs, 1) != 1)
		return;
	strtab_deinit(&d->texts);
	lock_destroy(&d->lock);
	free(d);
}

uint32_t dictionary_count(struct dictionary *d)
{
	lock_take(&d->lock);
	uint32_t n = d->texts.len;
	lock_release(&d->lock);
	return n;
}

uint32_t dictionary_find(struct dictionary *d, struct str text)
{
	lock_take(&d->lock);
	uint32_t id = strtab_find(&d->texts, text);
	lock_release(&d->lock);
	return id;
}

enum status label_ids_new(
	struct dictionary *d, const struct str *texts, uint32_t count, struct label_ids **out)
{
	struct label_ids *ids = malloc(sizeof(*ids) + count * sizeof(ids->v[0]));
	enum status s = ids ? OK : E_NOMEM;
	lock_take(&d->lock);
	for (uint32_t i = 0; i < count && s == OK; i++)
		s = strtab_intern(&d->texts, texts[i], &ids->v[i]);
	lock_release(&d->lock);
	if (s != OK) {
		free(ids);
		return s;
	}
	atomic_init(&ids->refs, 1);
	ids->dictionary = dictionary_ref(d);
	*out = ids;
	return OK;
}

struct label_ids *label_ids_ref(struct label_ids *ids)
{
	atomic_fetch_add(&ids->refs, 1);
	return ids;
}

void label_ids_unref(struct label_ids *ids)
{
	if (!ids || atomic_fetch_sub(&ids->refs, 1) != 1)
		return;
	dictionary_unref(ids->dictionary);
	free(ids);
}
