"""Functions to compute. An expert hands in their text, so each one is self-contained."""


def prime_sum(n, m, r):
    total, composite = 0, bytearray(n)
    for k in range(2, n):
        if not composite[k]:
            total += k if k % m == r else 0
            composite[k * k :: k] = b"\1" * len(range(k * k, n, k))
    return total


def divisor_count(n, start, d, s):
    counts = [0] * (start + n + 1)
    for k in range(1, start + n + 1):
        for multiple in range(k, start + n + 1, k):
            counts[multiple] += 1
    return sum(counts[k] == d and sum(map(int, str(k))) % s == 0 for k in range(start + 1, start + n + 1))


def recurrence(n, a, b, p, q, m):
    x, y = a, b
    for i in range(2, n + 1):
        x, y = y, (p * y + q * x + i) % m
    return y


def collatz(n, start):
    best, longest = 0, -1
    for k in range(start + 1, start + n + 1):
        x, steps = k, 0
        while x != 1:
            x, steps = x // 2 if x % 2 == 0 else 3 * x + 1, steps + 1
        if steps > longest:
            best, longest = k, steps
    return best


def circle(n, k, s):
    people, at = list(range(1, n + 1)), s - 1
    while len(people) > 1:
        at = (at + k - 1) % len(people)
        people.pop(at)
    return people[0]


def queue(n, a, c, m, counters):
    free, x, clock = [0] * counters, 1, 0
    for _ in range(n):
        x = (a * x + c) % m
        clock += x % 7
        counter = free.index(min(free))
        free[counter] = max(free[counter], clock) + 1 + x % 11
    return max(free)


def digit_row(n, start, pattern):
    row = "".join(str(k) for k in range(start, start + n))
    return sum(row.startswith(pattern, i) for i in range(len(row)))


def palindromes(n, a, c, m, letters):
    text, x = "", 1
    for _ in range(n):
        x = (a * x + c) % m
        text += letters[x // 7 % len(letters)]
    count = 0
    for middle in range(2 * n - 1):
        left, right = middle // 2, (middle + 1) // 2
        while left >= 0 and right < n and text[left] == text[right]:
            count += right - left >= 2
            left, right = left - 1, right + 1
    return count


def stock(n, rows):
    stored, lost = {name: amount for name, amount, *_ in rows}, 0
    for day in range(1, n + 1):
        for name, amount, every, taken in rows:
            if day % every == 0:
                stored[name] += amount
            if stored[name] >= taken:
                stored[name] -= taken
            else:
                lost += taken
    return sum(stored.values()) + lost


def ant(n, width, height, x, y):
    black, dx, dy = set(), 0, -1
    for _ in range(n):
        if (x, y) in black:
            black.remove((x, y))
            dx, dy = dy, -dx
        else:
            black.add((x, y))
            dx, dy = -dy, dx
        x, y = (x + dx) % width, (y + dy) % height
    return len(black)


def coins(n, values, m):
    ways = [1] + [0] * n
    for value in values:
        for amount in range(value, n + 1):
            ways[amount] = (ways[amount] + ways[amount - value]) % m
    return ways[n]


def rising(n, a, c, m):
    from bisect import bisect_left

    ends, x = [], 1
    for _ in range(n):
        x = (a * x + c) % m
        place = bisect_left(ends, x)
        ends[place : place + 1] = [x]
    return len(ends)


def square_chains(n, start, goal):
    count = 0
    for k in range(start + 1, start + n + 1):
        while k not in (1, 4):
            k = sum(int(digit) ** 2 for digit in str(k))
        count += k == goal
    return count
