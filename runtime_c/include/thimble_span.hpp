/* SPDX-License-Identifier: Apache-2.0 */
/* What the C++ headers of all models share: a span of elements, std::span where the library has it (C++20). */
#ifndef THIMBLE_SPAN_HPP
#define THIMBLE_SPAN_HPP

#include <stddef.h>

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#ifdef __cpp_lib_span
#include <span>
#endif

namespace thimble {

#ifdef __cpp_lib_span

template <class T, size_t N>
using span = std::span<T, N>;

#else

/** `N` elements that lie elsewhere, as std::span of C++20. */
template <class T, size_t N>
class span {
public:
    static constexpr size_t extent = N;
    using element_type = T;
    using iterator = T *;

    constexpr explicit span(T *first, size_t) noexcept : first_(first) {}

    constexpr T *data() const noexcept { return first_; }
    constexpr size_t size() const noexcept { return N; }
    constexpr size_t size_bytes() const noexcept { return N * sizeof(T); }
    constexpr bool empty() const noexcept { return N == 0; }
    constexpr T &operator[](size_t index) const noexcept { return first_[index]; }
    constexpr T &front() const noexcept { return first_[0]; }
    constexpr T &back() const noexcept { return first_[N - 1]; }
    constexpr iterator begin() const noexcept { return first_; }
    constexpr iterator end() const noexcept { return first_ + N; }

private:
    T *first_;
};

#endif

/** The `N` elements from `first` on. */
template <size_t N, class T>
constexpr span<T, N> span_of(T *first) noexcept
{
    return span<T, N>(first, N);
}

} // namespace thimble

#endif
