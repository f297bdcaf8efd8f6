// SPDX-License-Identifier: Apache-2.0
/*
 * Explorer of a finite transition system: visits every state that can be reached from a first one, breadth first, and
 * then asks from which of them an end state can still be reached. A state is plain bytes without padding, its size a
 * multiple of 8. One thread; memory is about sizeof(State) + 40 bytes a state.
 */
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

template <class State> class Explorer {
public:
	static constexpr uint32_t NONE = UINT32_MAX;

	uint32_t count() const { return size; }
	size_t edge_count() const { return successors.size(); }
	const State &at(uint32_t i) const { return chunks[i / CHUNK][i % CHUNK]; }

	/* Number of @state; adds it when it is new. @from: its parent then. */
	uint32_t add(const State &state, uint32_t from)
	{
		if (size * 10ull >= table.size() * 6ull)
			grow();
		uint32_t hash = hash_of(state);
		size_t slot = hash & (table.size() - 1);
		for (; table[slot].index != NONE; slot = (slot + 1) & (table.size() - 1))
			if (table[slot].hash == hash && !memcmp(&at(table[slot].index), &state, sizeof(State)))
				return table[slot].index;
		if (size % CHUNK == 0)
			chunks.emplace_back(new State[CHUNK]);
		chunks[size / CHUNK][size % CHUNK] = state;
		parents.push_back(from);
		table[slot] = {size, hash};
		return size++;
	}

	/* To be called for state 0, 1, 2 ... in turn: its edges follow by edge(). */
	void begin() { first.push_back(successors.size()); }
	void edge(uint32_t to) { successors.push_back(to); }

	/* The lowest-numbered state from which none of @ends can be reached, or NONE. */
	uint32_t find_stuck(const std::vector<uint32_t> &ends) const
	{
		std::vector<size_t> head(size + 1, 0);
		for (uint32_t to : successors)
			head[to + 1]++;
		for (uint32_t i = 0; i < size; i++)
			head[i + 1] += head[i];
		std::vector<uint32_t> sources(successors.size());
		std::vector<size_t> fill(head.begin(), head.end() - 1);
		for (uint32_t i = 0; i < size; i++)
			for (size_t e = first[i]; e < (i + 1 < size ? first[i + 1] : successors.size()); e++)
				sources[fill[successors[e]]++] = i;
		std::vector<bool> good(size);
		std::vector<uint32_t> work(ends);
		for (uint32_t i : ends)
			good[i] = true;
		while (!work.empty()) {
			uint32_t i = work.back();
			work.pop_back();
			for (size_t e = head[i]; e < head[i + 1]; e++)
				if (!good[sources[e]]) {
					good[sources[e]] = true;
					work.push_back(sources[e]);
				}
		}
		for (uint32_t i = 0; i < size; i++)
			if (!good[i])
				return i;
		return NONE;
	}

	/* A shortest path from the first state to @i, both included. */
	std::vector<uint32_t> path_to(uint32_t i) const
	{
		std::vector<uint32_t> path;
		for (; i != NONE; i = parents[i])
			path.insert(path.begin(), i);
		return path;
	}

private:
	static constexpr uint32_t CHUNK = 1 << 14;
	struct Slot {
		uint32_t index, hash;
	};

	static uint32_t hash_of(const State &state)
	{
		static_assert(sizeof(State) % 8 == 0, "a state is hashed by words");
		uint64_t h = 0, word;
		for (size_t i = 0; i < sizeof(State); i += 8) {
			memcpy(&word, (const char *)&state + i, 8);
			h = (h ^ word) * 0x9e3779b97f4a7c15ull;
			h ^= h >> 29;
		}
		return (uint32_t)(h ^ (h >> 32));
	}

	void grow()
	{
		std::vector<Slot> old(table.empty() ? 1 << 12 : table.size() * 2, Slot{NONE, 0});
		old.swap(table);
		for (const Slot &s : old) {
			size_t slot = s.hash & (table.size() - 1);
			if (s.index == NONE)
				continue;
			while (table[slot].index != NONE)
				slot = (slot + 1) & (table.size() - 1);
			table[slot] = s;
		}
	}

	uint32_t size = 0;
	std::vector<std::unique_ptr<State[]>> chunks;
	std::vector<uint32_t> parents, successors;
	std::vector<size_t> first;
	std::vector<Slot> table;
};

/*
 * Explores all from @first on. successors(state, out), is_end(state); @violation is set by either. Prints the verdict as its first line,
 * then, with @print, a shortest path to what is wrong. Exit status.
 */
template <class State, class Successors, class IsEnd, class Print>
int explore_all(const State &first, Successors successors, IsEnd is_end, std::string &violation, Print print)
{
	Explorer<State> explorer;
	std::vector<uint32_t> ends;
	std::vector<State> out;
	auto fail = [&](const std::string &what, uint32_t at) {
		printf("VIOLATION %s (%u states)\n", what.c_str(), explorer.count());
		for (uint32_t i : explorer.path_to(at))
			print(explorer.at(i));
		return 1;
	};

	explorer.add(first, explorer.NONE);
	for (uint32_t i = 0; i < explorer.count(); i++) {
		State s = explorer.at(i);
		out.clear();
		successors(s, out);
		if (violation.empty() && is_end(s))
			ends.push_back(i);
		if (!violation.empty())
			return fail(violation, i);
		explorer.begin();
		for (const State &t : out)
			explorer.edge(explorer.add(t, i));
	}
	uint32_t stuck = explorer.find_stuck(ends);
	if (stuck != explorer.NONE)
		return fail("stuck: no end state can be reached any more", stuck);
	printf("ok %u states %zu edges %zu ends\n", explorer.count(), explorer.edge_count(), ends.size());
	return 0;
}
