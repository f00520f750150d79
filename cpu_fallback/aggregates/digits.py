"""Exact sums: numbers as digits of some bits, whose sums are whole and so depend on no order.

A number is the sum of digit * 2 ** (first + width * place) over its places. Digits have its sign. Sums of
digits are int64 and are carried once, at the end: the small superaccumulator of Neal (2015), after
Kulisch's. What is rounded is rounded once, half to even.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled

_MANTISSA, _SPECIAL = (1 << 52) - 1, 0x7FF
_LOWEST = -1074
"""The exponent of the least float64 above 0."""
_ANY = 1 << 20
"""More than any exponent."""
_USUAL = 900
"""Between this and its opposite, exponents of sums and of what they lack are those of floats."""
_WHOLE = 1 << 53
"""Floats are exact below this."""
_SPLIT, _SHORT, _DOUBT = float((1 << 27) + 1), 1 << 26, 2.0**-40
"""Veltkamp's splitter; divisors whose product with a half is exact; how far a second quotient is off."""
WIDTH_OF_SQUARES = 24
"""Bits of a digit whose products are added up in 64 bits."""
_WIDEST, _WIDTH_OF_TENS = 52, 32
_TEN_DIGITS = 9
"""Decimal digits that one division takes away: 10 ** 9 and a digit of 32 bits make 62."""


class Digits(NamedTuple):
    """How the numbers of a column are written."""

    width: int
    first: int
    places: int
    has_squares: bool = False

    @property
    def lanes(self) -> int:
        """Numbers that are added up for each: its digits, and twice as many of its square."""
        return 3 * self.places if self.has_squares else self.places


def digits_for(
    lowest: int, highest: int, terms: int, *, has_squares: bool, is_decimal: bool
) -> Digits:
    """Digits for sums of this many terms of bits ``lowest`` ... ``highest``, the latter not included."""
    width = min(_WIDEST, 62 - max(1, terms.bit_length()))
    if is_decimal:
        width = min(width, _WIDTH_OF_TENS)
    if has_squares:
        width = min(width, WIDTH_OF_SQUARES)
    return Digits(width, lowest, max(1, -(-(highest - lowest) // width)), has_squares)


def bits_of_floats(values: np.ndarray) -> tuple[int, int]:
    """The lowest bit that finite floats may have, and the one above their highest."""
    finite = values[np.isfinite(values) & (values != 0)]
    if not finite.size:
        return 0, 1
    exponents = np.frexp(finite)[1]
    return max(int(exponents.min()) - 53, _LOWEST), int(exponents.max())


@compiled(allocates=True)
def sums_of_floats(bits, order, width, first, count, has_squares, before, at):
    """Sums of digits of floats, given as bits, before each place of an order: lanes from `at` on."""
    digits = np.zeros(count, np.int64)
    places, starts = np.empty(_SPECIAL, np.int64), np.empty(_SPECIAL, np.int64)
    for exponent in range(_SPECIAL):
        bit = max(exponent, 1) + _LOWEST - 1 - first
        places[exponent], starts[exponent] = bit // width, bit % width
    before[0, at : at + (3 * count if has_squares else count)] = 0
    for t in range(order.size):
        given = bits[order[t]]
        exponent = (given >> 52) & _SPECIAL
        mantissa = given & _MANTISSA
        digits[:] = 0
        if exponent < _SPECIAL and (exponent or mantissa):
            if exponent:
                mantissa |= _MANTISSA + 1
            _put(mantissa, places[exponent], starts[exponent], width, digits)
        _add(before, t, at, digits, given < 0, has_squares, width)


@compiled(allocates=True)
def sums_of_words(words, is_signed, order, width, count, has_squares, before, at):
    """As `sums_of_floats`, of whole numbers: uint64, shape (n, words), the lowest word first."""
    digits = np.zeros(count, np.int64)
    last = words.shape[1] - 1
    magnitude = np.empty(last + 1, np.uint64)
    mask = np.uint64((1 << width) - 1)
    before[0, at : at + (3 * count if has_squares else count)] = 0
    for t in range(order.size):
        row = order[t]
        is_negative = is_signed and (words[row, last] >> np.uint64(63)) != 0
        carry = np.uint64(1)
        for j in range(last + 1):
            word = words[row, j]
            if is_negative:
                word = ~word + carry
                carry = np.uint64(word == 0 and carry != 0)
            magnitude[j] = word
        for k in range(count):
            bit = k * width
            j, shift = bit >> 6, np.uint64(bit & 63)
            digit = np.uint64(0)
            if j <= last:
                digit = magnitude[j] >> shift
            if j < last and shift:
                digit |= magnitude[j + 1] << (np.uint64(64) - shift)
            digits[k] = np.int64(digit & mask)
        _add(before, t, at, digits, is_negative, has_squares, width)


@compiled(forceinline=True)
def _put(mantissa, place, shift, width, digits):
    """The digits of a mantissa that begins `shift` bits above a place."""
    mask = (1 << width) - 1
    digits[place] = (mantissa & ((1 << (width - shift)) - 1)) << shift
    rest = mantissa >> (width - shift)
    while rest:
        place += 1
        digits[place] = rest & mask
        rest >>= width


@compiled(forceinline=True)
def _add(before, t, at, digits, is_negative, has_squares, width):
    """The sums after one more number."""
    count = digits.size
    for k in range(count):
        before[t + 1, at + k] = before[t, at + k] + (-digits[k] if is_negative else digits[k])
    if not has_squares:
        return
    mask = (1 << width) - 1
    carry = np.int64(0)
    for k in range(2 * count):
        total = carry
        for j in range(max(0, k - count + 1), min(k + 1, count)):
            total += digits[j] * digits[k - j]
        to = at + count + k
        before[t + 1, to] = before[t, to] + (total & mask)
        carry = total >> width


@compiled
def carried(digits, width):
    """Carry sums of digits: all but the last are then below 2 ** width, and it has the sign."""
    mask, carry, last = (1 << width) - 1, np.int64(0), digits.size - 1
    for k in range(last):
        total = digits[k] + carry
        digits[k] = total & mask
        carry = total >> width
    digits[last] += carry


@compiled
def _made_positive(digits, width):
    """Carry sums of digits, and turn a number below 0 into its amount: whether it was one."""
    carried(digits, width)
    if digits[digits.size - 1] >= 0:
        return False
    for k in range(digits.size):
        digits[k] = -digits[k]
    carried(digits, width)
    return True


@compiled
def _divided(digits, width, divisor):
    """Divide a number of carried digits, not below 0, and leave off what is below the last."""
    # What is left off decides no rounding: were it above 0 and all digits between it and the rounded
    # ones 0, the divisors would have more bits than these digits.
    last = digits.size - 1
    left = digits[last] % divisor
    digits[last] //= divisor
    for k in range(last - 1, -1, -1):
        dividend = (left << width) | digits[k]
        digits[k] = dividend // divisor
        left = dividend % divisor


@compiled
def _rounded(digits, width, first, lowest):
    """Carried digits, not below 0, rounded: 53 bits, at least `lowest`, and their exponent."""
    k = digits.size - 1
    while k >= 0 and digits[k] == 0:
        k -= 1
    if k < 0:
        return np.int64(0), np.int64(0)
    top, bits, exponent, is_more = digits[k], np.int64(0), first + k * width, False
    while bits < 63 and top >> bits:
        bits += 1
    k -= 1
    while k >= 0 and bits < 56:
        taken = min(width, 62 - bits)
        rest = digits[k] & ((1 << (width - taken)) - 1)
        top = (top << taken) | (digits[k] >> (width - taken))
        is_more |= rest != 0
        bits += taken
        exponent -= taken
        k -= 1
    while k >= 0 and not is_more:
        is_more = digits[k] != 0
        k -= 1
    kept = min(np.int64(53), bits + exponent - lowest)
    if kept < 0:
        return np.int64(0), np.int64(0)
    dropped = bits - kept
    if dropped > 0:
        half, below = np.int64(1) << (dropped - 1), top & ((np.int64(1) << dropped) - 1)
        top >>= dropped
        exponent += dropped
        if below > half or (below == half and (is_more or top & 1)):
            top += 1
    return top, exponent


@compiled(forceinline=True)
def _two_sum(a, b):
    """The float nearest to a sum, and what it lacks: Knuth's."""
    found = a + b
    of_b = found - a
    return found, (a - (found - of_b)) + (b - of_b)


@compiled(forceinline=True)
def _quick(sums, i, scales, divisor):
    """Sums of digits divided by a number, in two floats; and whether that is surely rounded right."""
    high = low = lost = 0.0
    for k in range(scales.size - 1, -1, -1):
        digit = sums[i, k]
        upper = digit >> 31 << 31 if abs(digit) >= _WHOLE else digit
        high, rest = _two_sum(high, float(upper) * scales[k])
        low, rest = _two_sum(low, rest)
        lost += abs(rest)
        if upper != digit:
            high, rest = _two_sum(high, float(digit - upper) * scales[k])
            low, rest = _two_sum(low, rest)
            lost += abs(rest)
    high, low = _two_sum(high, low)
    if divisor <= 1:
        return high, lost == 0.0
    found = high / divisor
    # The product's halves have few bits enough to be exact.
    upper = found * _SPLIT - (found * _SPLIT - found)
    rest = ((high - upper * divisor) - (found - upper) * divisor + low) / divisor
    least, most = found + rest * (1 - _DOUBT), found + rest * (1 + _DOUBT)
    return least, lost == 0.0 and least == most and divisor < _SHORT


@compiled(allocates=True)
def quotients(sums, width, first, divisors, tens, out):
    """Sums of digits, shape (n, count), divided by a number each and by `tens`, rounded: float64."""
    n, count = sums.shape
    # Enough below the point that a rounded quotient has all its bits.
    more = 1 + (126 + 31 * tens.size) // width if tens.size or divisors.size else 0
    digits = np.empty(count + more, np.int64)
    scales = np.empty(count)
    for k in range(count):
        scales[k] = math.ldexp(1.0, first + k * width)
    is_usual = not tens.size and first > -_USUAL and first + count * width < _USUAL
    for i in range(n):
        divisor = divisors[i] if divisors.size else 1
        if is_usual:
            out[i], is_right = _quick(sums, i, scales, divisor)
            if is_right:
                continue
        digits[:more] = 0
        digits[more:] = sums[i]
        is_negative = _made_positive(digits, width)
        if divisor > 1:
            _divided(digits, width, divisor)
        for ten in tens:
            _divided(digits, width, ten)
        top, exponent = _rounded(digits, width, first - more * width, _LOWEST)
        out[i] = math.ldexp(float(-top if is_negative else top), exponent)


@compiled(allocates=True)
def deviations(sums, width, first, numbers, tens, out):
    """Sample standard deviations of this many numbers each, of sums with squares; NaN of fewer than 2."""
    n, count = sums.shape[0], sums.shape[1] // 3
    # (N * sum of squares - square of sum) / (N * (N - 1)): the numerator needs no rounding.
    more = 1 + (160 + 31 * tens.size) // width
    size = 2 * count + 6
    total, squares = np.empty(count + 3, np.int64), np.empty(size, np.int64)
    digits = np.empty(more + size, np.int64)
    for i in range(n):
        if numbers[i] < 2:
            out[i] = np.nan
            continue
        # Places at the end, so that no carried digit is longer than others.
        total[count:] = 0
        total[:count] = sums[i, :count]
        _made_positive(total, width)
        squares[2 * count :] = 0
        squares[: 2 * count] = sums[i, count:]
        carried(squares, width)
        digits[:] = 0
        carry = np.int64(0)
        for k in range(size):
            value = carry + numbers[i] * squares[k]
            for j in range(max(0, k - total.size + 1), min(k + 1, total.size)):
                value -= total[j] * total[k - j]
            digits[more + k] = value & ((1 << width) - 1)
            carry = value >> width
        _divided(digits, width, numbers[i])
        _divided(digits, width, numbers[i] - 1)
        for ten in tens:
            _divided(digits, width, ten)
        # A variance may be beyond all floats where its root is not.
        top, exponent = _rounded(digits, width, 2 * first - more * width, -_ANY)
        is_odd = exponent & 1
        out[i] = math.ldexp(math.sqrt(float(top << is_odd)), (exponent - is_odd) >> 1)


@compiled(allocates=True)
def whole_sums(sums, width, is_signed, words):
    """Sums of digits as whole numbers of 64-bit words, the lowest first: whether one has no room."""
    n, count = sums.shape
    size = words.shape[1]
    digits = np.empty(count, np.int64)
    wide = np.empty(max(size, (count * width >> 6) + 2) + 1, np.uint64)
    is_over = False
    for i in range(n):
        digits[:] = sums[i]
        carried(digits, width)
        wide[:] = 0
        for k in range(count):
            at = k * width
            j, shift = at >> 6, at & 63
            wide[j] |= np.uint64(digits[k]) << np.uint64(shift)
            if shift:
                wide[j + 1] |= np.uint64(digits[k] >> (64 - shift))
            if k == count - 1 and digits[k] < 0:
                wide[j + (2 if shift else 1) :] = ~np.uint64(0)
        words[i] = wide[:size]
        rest = np.uint64(0)
        if is_signed and wide[size - 1] >> np.uint64(63):
            rest = ~rest
        for j in range(size, wide.size):
            is_over |= wide[j] != rest
    return is_over


def tens_of(scale: int) -> np.ndarray:
    """Divisors whose product is 10 ** scale, each small enough for digits of decimals: int64 array."""
    parts = [min(_TEN_DIGITS, scale - at) for at in range(0, scale, _TEN_DIGITS)]
    return np.array([10**part for part in parts], np.int64)
